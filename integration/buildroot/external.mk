include $(sort $(wildcard $(BR2_EXTERNAL_PACKFS_PATH)/package/*/*.mk))
